ebda_fit <- function(x, ...) UseMethod("ebda_fit")

ebda_fit.default <- function(x, y, ...) {
  x <- as_samples(x)
  if (!is.null(colnames(x)) && anyDuplicated(colnames(x))) {
    twice <- colnames(x)[duplicated(colnames(x))]
    stop("features of the same name: ", shortened(unique(twice)), call. = FALSE)
  }
  y <- as_classes(y, nrow(x))
  labels <- as.character(y)
  model <- new_classifier(list(...), labels)
  model$fit(x, as_labels(labels))
  structure(
    list(model = model, file = written(model), levels = levels(y),
         counts = table(y), features = colnames(x), n_features = ncol(x)),
    class = "ebda"
  )
}

ebda_fit.data.frame <- function(x, y, ...) ebda_fit.default(x, y, ...)

ebda_fit.formula <- function(x, data, ...) {
  response <- all.vars(x[[2]])
  everything <- identical(x[[3]], quote(.)) && length(response) == 1
  others <- if (everything) data[setdiff(names(data), response)] else NULL
  if (everything && all(vapply(others, is.numeric, logical(1)))) {
    # Thousands of columns need no expansion of the formula.
    return(ebda_fit.default(others, data[[response]], ...))
  }
  frame <- model.frame(x, data)
  found <- terms(frame)
  values <- without_intercept(model.matrix(found, frame))
  fitted <- ebda_fit.default(values, model.response(frame), ...)
  fitted$terms <- delete.response(found)
  fitted$xlevels <- stats::.getXlevels(found, frame)
  fitted
}

without_intercept <- function(x) x[, colnames(x) != "(Intercept)", drop = FALSE]

ebda_fit.SummarizedExperiment <- function(x, y, assay = 1, ...) {
  if (is.character(y) && length(y) == 1) {
    known <- names(SummarizedExperiment::colData(x))
    if (!y %in% known) {
      stop("colData has no column ", y, "; it has ", shortened(known),
           call. = FALSE)
    }
    y <- SummarizedExperiment::colData(x)[[y]]
  }
  fitted <- ebda_fit.default(of_experiment(x, assay), y, ...)
  fitted$assay <- assay
  fitted
}

# The model as the bytes of a model file, so that it survives saveRDS().
written <- function(model) {
  path <- tempfile(fileext = ".ebda")
  on.exit(unlink(path))
  python_module()$save(model, path)
  readBin(path, "raw", file.size(path))
}

# The model in Python, which is gone in another session.
in_python <- function(object) {
  if (!reticulate::py_is_null_xptr(object$model)) return(object$model)
  path <- tempfile(fileext = ".ebda")
  on.exit(unlink(path))
  writeBin(object$file, path)
  python_module()$load(path)
}
