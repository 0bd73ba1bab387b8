library(testthat)
library(ebda)

test_check("ebda")
