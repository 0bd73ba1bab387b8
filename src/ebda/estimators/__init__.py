"""The estimators: thin shells around the steps, at home in scikit-learn."""
