# Python's ebda, and what crosses the border.

python_module <- function(name = "ebda") {
  if (!reticulate::py_module_available(name)) {
    stop("Python's ebda is not installed in ", reticulate::py_config()$python,
         ": install it there, or name another Python in RETICULATE_PYTHON",
         call. = FALSE)
  }
  reticulate::import(name, convert = FALSE)
}

to_r <- function(x) reticulate::py_to_r(x)

# A vector as an array of Python, also if it has one element.
as_labels <- function(labels) {
  numpy <- reticulate::import("numpy", convert = FALSE)
  numpy$array(as.list(labels))
}

# Whole numbers are integers for Python: R writes 5 where it means 5L.
as_arguments <- function(arguments) {
  lapply(arguments, function(value) {
    whole <- is.numeric(value) && length(value) == 1 && is.finite(value) &&
      value == round(value)
    if (whole) as.integer(value) else value
  })
}

# Labels in the order of Python, which goes by code points.
sorted_classes <- function(labels) sort(unique(labels), method = "radix")

# Class probabilities by name, in the order of Python.
with_priors <- function(arguments, labels) {
  priors <- arguments$priors
  if (is.null(priors) || is.null(names(priors))) return(arguments)
  classes <- sorted_classes(labels)
  if (!setequal(names(priors), classes)) {
    stop("priors are of ", toString(names(priors)), ", and the classes are ",
         toString(classes), call. = FALSE)
  }
  arguments$priors <- unname(priors[classes])
  arguments
}

new_classifier <- function(arguments, labels) {
  arguments <- as_arguments(with_priors(arguments, labels))
  do.call(python_module()$EBClassifier, arguments)
}
