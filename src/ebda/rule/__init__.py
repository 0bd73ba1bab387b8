"""From the posterior to a linear rule, and to a ranking of the features."""
