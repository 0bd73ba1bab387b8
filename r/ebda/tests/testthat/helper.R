# Sick samples have 10 of 80 features shifted; labels are not in alphabetical order.
drawn <- function(n = 40, p = 80, seed = 1) {
  set.seed(seed)
  y <- factor(rep(c("well", "ill"), length.out = n), levels = c("well", "ill"))
  x <- matrix(rnorm(n * p), n, dimnames = list(paste0("s", 1:n), paste0("g", 1:p)))
  x[y == "ill", 1:10] <- x[y == "ill", 1:10] + 2
  list(x = x, y = y)
}

quick <- function(...) {
  ebda_fit(..., covariance = "diagonal", shrinkage = "mean", calibrate = FALSE)
}

needs_python <- function() {
  there <- reticulate::py_module_available("ebda")
  if (!there && Sys.getenv("EBDA_REQUIRED") == "true") {
    stop("Python's ebda is not there, and these tests must not be skipped")
  }
  testthat::skip_if_not(there, "Python's ebda is not installed")
}
