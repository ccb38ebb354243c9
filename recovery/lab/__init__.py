"""The simulated cluster: real SSH servers, scripted faults, a real small training job."""
