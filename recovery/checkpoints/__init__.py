"""What the inspectors saw on each node -> the step to resume from."""
