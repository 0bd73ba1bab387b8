ebda_cv <- function(x, y, folds = 5, seed = 0, ...) {
  x <- as_samples(x)
  y <- as_classes(y, nrow(x))
  labels <- as.character(y)
  found <- python_module("ebda.evaluation")$cross_validate(
    new_classifier(list(...), labels), x, as_labels(labels),
    as.integer(folds), as.integer(seed)
  )
  classes <- as.character(to_r(found$classes))
  p <- to_r(found$probabilities)
  dimnames(p) <- list(rownames(x), classes)
  confusion <- to_r(found$confusion)
  dimnames(confusion) <- list(true = classes, predicted = classes)
  structure(
    list(error = to_r(found$error), interval = unlist(to_r(found$interval())),
         folds = to_r(found$n_folds), prob = p[, levels(y), drop = FALSE],
         confusion = confusion[levels(y), levels(y)]),
    class = "ebda_cv"
  )
}

print.ebda_cv <- function(x, ...) {
  interval <- sprintf("%.1f%%", 100 * x$interval)
  cat("Error in ", x$folds, "-fold cross-validation: ",
      sprintf("%.1f%%", 100 * x$error), " (95% interval ", interval[1], " to ",
      interval[2], ")\n", sep = "")
  print(x$confusion)
  invisible(x)
}
