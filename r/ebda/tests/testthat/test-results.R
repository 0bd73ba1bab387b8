test_that("features are those of the ranking, second level less first", {
  needs_python()
  d <- drawn()
  found <- ebda_features(quick(d$x, d$y))
  expect_equal(nrow(found), 80)
  expect_setequal(found$feature[1:8], intersect(found$feature[1:8], paste0("g", 1:10)))
  expect_false(is.unsorted(found$q_value))
  means <- colMeans(d$x[d$y == "ill", ]) - colMeans(d$x[d$y == "well", ])
  expect_equal(found$difference, unname(means[found$feature]))
  expect_true(all(found$t * found$difference >= 0))
  # The t statistics are moderated: close to those of t.test, and in their order.
  t <- apply(d$x, 2, function(v) {
    stats::t.test(v[d$y == "ill"], v[d$y == "well"], var.equal = TRUE)$statistic
  })
  expect_gt(stats::cor(found$t, t[found$feature]), 0.99)
})

test_that("more classes have the class of the strongest evidence", {
  needs_python()
  set.seed(4)
  y <- factor(rep(c("b", "c", "a"), 15), levels = c("b", "c", "a"))
  x <- matrix(rnorm(45 * 30), 45)
  x[y == "c", 5] <- x[y == "c", 5] + 5
  fit <- quick(x, y)
  first <- ebda_features(fit)[1, ]
  expect_equal(first$feature, 5)
  expect_equal(as.character(first$class), "c")
  expect_equal(first$difference, mean(x[y == "c", 5]) - mean(x[, 5]))
  expect_equal(colnames(predict(fit, x, type = "prob")), levels(y))
  expect_output(print(fit), "45: 15 b, 15 c, 15 a")
})

test_that("cross-validation is that of Python, and honest", {
  needs_python()
  d <- drawn()
  found <- ebda_cv(d$x, d$y, folds = 4, seed = 3, covariance = "diagonal",
                   shrinkage = "mean", calibrate = FALSE)
  ebda <- reticulate::import("ebda")
  model <- ebda$EBClassifier(covariance = "diagonal", shrinkage = "mean",
                             calibrate = FALSE)
  labels <- reticulate::import("numpy")$array(as.list(as.character(d$y)))
  same <- reticulate::import("ebda.evaluation")$cross_validate(model, d$x, labels, 4L, 3L)
  expect_equal(found$error, same$error)
  expect_equal(unname(found$prob), same$probabilities[, 2:1])
  expect_equal(sum(diag(found$confusion)), 40 * (1 - found$error))
  expect_equal(rowSums(found$confusion), c(well = 20, ill = 20))
  expect_output(print(found), "Error in 4-fold cross-validation: ")
  # Nothing to find: no better than a coin.
  set.seed(9)
  noise <- ebda_cv(matrix(rnorm(40 * 30), 40), d$y, covariance = "diagonal",
                   shrinkage = "mean", calibrate = FALSE)
  expect_gt(noise$error, 0.25)
})
