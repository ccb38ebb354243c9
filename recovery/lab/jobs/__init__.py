"""What the lab's nodes compute: a real, small training job."""
