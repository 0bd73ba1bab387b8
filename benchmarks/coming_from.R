# The tasks of benchmarks/coming_from.py in R: Rscript coming_from.R FOLDER
folder <- commandArgs(trailingOnly = TRUE)[1]
read <- function(name) as.matrix(read.csv(file.path(folder, name), header = FALSE))
x <- read("x.csv")
y <- scan(file.path(folder, "y.txt"), what = "", quiet = TRUE)
fold <- scan(file.path(folder, "fold.txt"), quiet = TRUE)
train <- scan(file.path(folder, "train.txt"), quiet = TRUE) == 1
inner <- scan(file.path(folder, "inner.txt"), quiet = TRUE)
storage.mode(x) <- "double"
dimnames(x) <- list(NULL, paste0("g", seq_len(ncol(x))))

suppressPackageStartupMessages({
  library(glmnet); library(pamr); library(sda); library(limma); library(ashr)
})

glmnet_fit <- function(x, y, inner) {
  fit <- cv.glmnet(x, y, family = "binomial", foldid = inner)
  list(predict = function(new) as.character(predict(fit, new, s = "lambda.1se", type = "class")),
       features = sum(coef(fit, s = "lambda.1se")[-1] != 0))
}
pamr_fit <- function(x, y, inner) {
  data <- list(x = t(x), y = factor(y))
  capture.output(fit <- pamr.train(data))
  folds <- split(seq_along(y), inner)
  capture.output(crossed <- pamr.cv(fit, data, folds = folds))
  # The largest threshold with the fewest errors.
  best <- max(which(crossed$error == min(crossed$error)))
  list(predict = function(new) as.character(pamr.predict(fit, t(new), fit$threshold[best])),
       features = fit$nonzero[best])
}
sda_fit <- function(x, y, inner) {
  fit <- sda(x, y, verbose = FALSE)
  list(predict = function(new) as.character(predict(fit, new, verbose = FALSE)$class),
       features = ncol(x))
}

cat("rule,test,crossed,features\n")
for (rule in c("glmnet", "pamr", "sda")) {
  make <- get(paste0(rule, "_fit"))
  fit <- make(x[train, ], y[train], inner[train])
  test <- sum(fit$predict(x[!train, ]) != y[!train])
  wrong <- 0
  for (f in unique(fold)) {
    held <- fold == f
    wrong <- wrong + sum(make(x[!held, ], y[!held], inner[!held])$predict(x[held, ]) != y[held])
  }
  cat(rule, test, wrong, fit$features, sep = ","); cat("\n")
}

fit <- eBayes(lmFit(t(x), model.matrix(~ factor(y))))
write.csv(data.frame(t = fit$t[, 2], p = fit$p.value[, 2],
                     q = p.adjust(fit$p.value[, 2], "BH")),
          file.path(folder, "limma.csv"), row.names = FALSE)

estimates <- read.csv(file.path(folder, "estimates.csv"))
found <- ash(estimates$estimate, estimates$se, mixcompdist = "halfuniform")
write.csv(data.frame(mean = get_pm(found), s = get_svalue(found)),
          file.path(folder, "ashr.csv"), row.names = FALSE)

for (package in c("glmnet", "pamr", "sda", "limma", "ashr")) {
  cat("version", package, as.character(packageVersion(package)), sep = ","); cat("\n")
}
cat("version,R,", as.character(getRversion()), "\n", sep = "")
