"""DSpark drafters: data from the target, training, evaluation."""
