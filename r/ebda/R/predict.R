predict.ebda <- function(object, newdata, type = c("class", "prob"), ...) {
  type <- match.arg(type)
  x <- new_samples(object, newdata)
  model <- in_python(object)
  p <- to_r(model$predict_proba(x))
  colnames(p) <- as.character(to_r(model$classes_))
  rownames(p) <- rownames(x)
  p <- p[, object$levels, drop = FALSE]
  if (type == "prob") return(p)
  # Equal probabilities go to the class that Python would name.
  predicted <- as.character(to_r(model$predict(x)))
  stats::setNames(factor(predicted, object$levels), rownames(x))
}

new_samples <- function(object, newdata) {
  if (is(newdata, "SummarizedExperiment")) {
    assay <- if (is.null(object$assay)) 1 else object$assay
    x <- of_experiment(newdata, assay)
  } else if (!is.null(object$terms)) {
    frame <- model.frame(object$terms, newdata, xlev = object$xlevels)
    x <- without_intercept(model.matrix(object$terms, frame))
  } else {
    if (is.data.frame(newdata) && !is.null(object$features)) {
      # The class may still be among the columns.
      newdata <- newdata[intersect(object$features, names(newdata))]
    }
    x <- as_samples(newdata)
  }
  in_order(x, object$features, object$n_features)
}

print.ebda <- function(x, ...) {
  sizes <- paste(x$counts, names(x$counts))
  found <- ebda_features(x)
  differ <- sum(found$q_value <= 0.05)
  model <- in_python(x)
  cat("Empirical Bayes discriminant analysis\n",
      "  samples   ", sum(x$counts), ": ", paste(sizes, collapse = ", "), "\n",
      "  features  ", x$n_features, ", of which ", differ,
      " differ between the classes (q <= 0.05)\n",
      "  factors   ", to_r(model$n_factors_), " common to many features\n",
      sep = "")
  if (differ > 0) {
    cat("First features:\n")
    first <- utils::head(found[found$q_value <= 0.05, ], 6)
    print(first, digits = 3, row.names = FALSE)
  }
  invisible(x)
}

ebda_features <- function(object) {
  model <- in_python(object)
  ranking <- model$ranking_
  order <- as.integer(to_r(ranking$order)) + 1L
  feature <- if (is.null(object$features)) order else object$features[order]
  found <- data.frame(feature = feature, stringsAsFactors = FALSE)
  difference <- to_r(ranking$difference)
  t <- to_r(ranking$marginal$t)
  classes <- as.character(to_r(model$classes_))
  if (length(classes) == 2) {
    # Of the second level less the first, as R has it.
    sign <- if (identical(classes, object$levels)) 1 else -1
    found$difference <- sign * as.numeric(difference)[order]
    found$t <- sign * as.numeric(t)[order]
  } else {
    strongest <- as.integer(to_r(ranking$marginal$strongest)) + 1L
    at <- cbind(strongest[order], order)
    found$class <- factor(classes[strongest[order]], object$levels)
    found$difference <- difference[at]
    found$t <- t[at]
  }
  found$q_value <- as.numeric(to_r(ranking$marginal$q_over_classes))[order]
  found
}
