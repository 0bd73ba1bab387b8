# Samples in rows, as a matrix of numbers; and classes, as a factor.

as_samples <- function(x) {
  if (is.data.frame(x)) {
    text <- names(x)[!vapply(x, is.numeric, logical(1))]
    if (length(text)) {
      stop("these columns of x are not numbers: ", shortened(text), call. = FALSE)
    }
    x <- as.matrix(x)
  }
  if (is(x, "sparseMatrix")) return(methods::as(x, "CsparseMatrix"))
  if (!is.matrix(x) || !is.numeric(x)) {
    stop("x must be a matrix of numbers with samples in rows, got ",
         class(x)[1], call. = FALSE)
  }
  storage.mode(x) <- "double"
  x
}

as_classes <- function(y, n) {
  if (length(y) != n) {
    stop("x has ", n, " samples, and y has ", length(y), " labels", call. = FALSE)
  }
  if (anyNA(y)) {
    stop("y has no label for sample ", which(is.na(y))[1], call. = FALSE)
  }
  y <- droplevels(as.factor(y))
  if (nlevels(y) < 2) stop("y needs two classes, it has one", call. = FALSE)
  y
}

# Features of new samples, in the order of the fit.
in_order <- function(x, features, n_features) {
  if (is.null(features) || is.null(colnames(x))) {
    if (ncol(x) != n_features) {
      stop("the model has ", n_features, " features, and newdata has ", ncol(x),
           call. = FALSE)
    }
    return(x)
  }
  missing <- setdiff(features, colnames(x))
  if (length(missing)) {
    stop(length(missing), " of ", n_features, " features are not in newdata: ",
         shortened(missing), call. = FALSE)
  }
  x[, features, drop = FALSE]
}

shortened <- function(names, most = 5) {
  more <- length(names) - most
  if (more <= 0) return(toString(names))
  paste0(toString(names[seq_len(most)]), " and ", more, " more")
}

# Of an experiment: samples are its columns.
of_experiment <- function(x, assay) {
  values <- SummarizedExperiment::assay(x, assay)
  as_samples(if (is(values, "sparseMatrix")) Matrix::t(values) else t(as.matrix(values)))
}
