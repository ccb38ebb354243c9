"""What tools print -> facts, where several checks or an art read the same tool."""
