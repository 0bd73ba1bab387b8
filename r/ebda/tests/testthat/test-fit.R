test_that("probabilities and classes are those of Python", {
  needs_python()
  d <- drawn()
  fit <- ebda_fit(d$x, d$y)
  python <- reticulate::import("ebda")$EBClassifier()
  python$fit(d$x, reticulate::import("numpy")$array(as.list(as.character(d$y))))
  new <- drawn(seed = 2)
  p <- predict(fit, new$x, type = "prob")
  expected <- python$predict_proba(new$x)  # Python sorts: ill, well
  expect_equal(unname(p), expected[, 2:1])
  expect_equal(colnames(p), c("well", "ill"))
  expect_equal(rownames(p), rownames(new$x))
  predicted <- predict(fit, new$x)
  expect_equal(levels(predicted), levels(d$y))
  expect_equal(as.character(predicted), as.character(python$predict(new$x)))
  expect_lt(mean(predicted != new$y), 0.1)
})

test_that("all ways to give the data lead to one model", {
  needs_python()
  d <- drawn()
  p <- predict(quick(d$x, d$y), d$x, type = "prob")
  frame <- data.frame(d$x, type = d$y)
  by_formula <- quick(type ~ ., data = frame)
  expect_equal(predict(by_formula, frame, type = "prob"), p)
  # Without the class, and with columns in another order.
  expect_equal(predict(by_formula, frame[80:1], type = "prob"), p)
  expect_equal(predict(quick(data.frame(d$x), d$y), frame, type = "prob"), p)
  spelled <- stats::reformulate(colnames(d$x), "type")
  expect_equal(predict(quick(spelled, data = frame), frame, type = "prob"), p)
  skip_if_not_installed("Matrix")
  sparse <- Matrix::Matrix(d$x, sparse = TRUE)
  expect_equal(predict(quick(sparse, d$y), sparse, type = "prob"), p)
  skip_if_not_installed("SummarizedExperiment")
  experiment <- SummarizedExperiment::SummarizedExperiment(
    list(counts = 2 * t(d$x), values = t(d$x)),
    colData = S4Vectors::DataFrame(type = d$y, row.names = rownames(d$x))
  )
  fit <- quick(experiment, "type", assay = "values")
  expect_equal(predict(fit, experiment, type = "prob"), p)
  expect_error(quick(experiment, "kind"), "colData has no column kind; it has type")
})

test_that("a formula expands factors, with the levels of the fit", {
  needs_python()
  d <- drawn()
  frame <- data.frame(d$x[, 1:20], sex = rep(c("f", "m"), each = 20), type = d$y)
  fit <- quick(type ~ ., data = frame)
  expect_equal(fit$features, c(colnames(d$x)[1:20], "sexm"))
  one <- predict(fit, frame[frame$sex == "f", ], type = "prob")
  expect_equal(one, predict(fit, frame, type = "prob")[frame$sex == "f", ])
})

test_that("features are found by their names", {
  needs_python()
  d <- drawn()
  fit <- quick(d$x, d$y)
  expect_equal(predict(fit, d$x[, 80:1]), predict(fit, d$x))
  expect_error(predict(fit, d$x[, -(1:7)]), "7 of 80 features are not in newdata: g1, g2")
  expect_equal(unname(predict(fit, unname(d$x))), unname(predict(fit, d$x)))
  expect_error(predict(fit, unname(d$x)[, 1:3]), "has 80 features, and newdata has 3")
})

test_that("missing values may stay", {
  needs_python()
  d <- drawn()
  gaps <- d$x
  gaps[cbind(1:40, 1:40)] <- NA
  expect_lt(mean(predict(quick(gaps, d$y), gaps) != d$y), 0.1)
})

test_that("a model survives being saved", {
  needs_python()
  d <- drawn()
  fit <- quick(d$x, d$y)
  path <- tempfile(fileext = ".rds")
  on.exit(unlink(path))
  saveRDS(fit, path)
  again <- readRDS(path)
  expect_true(reticulate::py_is_null_xptr(again$model))
  expect_identical(predict(again, d$x, type = "prob"), predict(fit, d$x, type = "prob"))
  expect_output(print(again), "80, of which 1")
})

test_that("class probabilities go by name", {
  needs_python()
  d <- drawn()
  rare <- quick(d$x, d$y, priors = c(well = 0.99, ill = 0.01))
  often <- quick(d$x, d$y, priors = c(ill = 0.99, well = 0.01))
  p <- lapply(list(rare, often), predict, d$x, type = "prob")
  expect_true(all(p[[1]][, "ill"] <= p[[2]][, "ill"]))
  expect_gt(mean(p[[2]][, "ill"]), mean(p[[1]][, "ill"]))
  expect_error(quick(d$x, d$y, priors = c(a = 0.5, b = 0.5)),
               "priors are of a, b, and the classes are ill, well")
})

test_that("what cannot be fitted is named", {
  needs_python()
  d <- drawn()
  expect_error(ebda_fit(d$x, d$y[1:3]), "x has 40 samples, and y has 3 labels")
  expect_error(ebda_fit(d$x, replace(d$y, 2, NA)), "no label for sample 2")
  expect_error(ebda_fit(d$x, rep("a", 40)), "y needs two classes")
  expect_error(ebda_fit(list(1), "a"), "x must be a matrix of numbers")
  expect_error(ebda_fit(data.frame(a = 1:4, b = letters[1:4]), c(0, 0, 1, 1)),
               "not numbers: b")
  expect_error(ebda_fit(cbind(a = 1:4, a = 1:4), c(0, 0, 1, 1)), "same name: a")
})
