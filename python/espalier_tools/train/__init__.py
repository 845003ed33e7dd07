"""Training on CPU cores: nano, a small LFM2 assistant, and DSpark drafters for any target."""
