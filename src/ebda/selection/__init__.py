"""What is compared inside of `fit`, and how it is chosen and calibrated."""
