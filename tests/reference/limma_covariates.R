# Moderated t statistics of limma with covariates, and duplicateCorrelation.
library(limma)
options(digits=17)
set.seed(7)
n <- 24; p <- 60
class <- rep(c(0,1), c(10,14))
class3 <- rep(c(0,1,2), 8)
age <- round(rnorm(n, 50 + 5*class, 8), 1)
sex <- sample(c("f","m"), n, TRUE)
plate <- sample(c("p1","p2","p3"), n, TRUE)
X <- matrix(rnorm(n*p), n, p) * matrix(sqrt(4/rchisq(p, 4)), n, p, byrow=TRUE)
X <- X + outer(age, rnorm(p, 0, .05)) + outer(as.numeric(factor(plate)), rnorm(p))
X <- round(X, 6)
fit <- eBayes(lmFit(t(X), model.matrix(~ class + age + sex + plate)))
# three classes: each class against the mean of all samples
D <- model.matrix(~ 0 + factor(class3) + scale(age, scale=FALSE) + sex + plate)
D[,-(1:3)] <- scale(D[,-(1:3)], scale=FALSE)
w <- table(class3)/n
cm <- rbind(diag(3) - matrix(w,3,3), matrix(0, ncol(D)-3, 3))
fit3 <- eBayes(contrasts.fit(lmFit(t(X), D), cm))
num <- function(x) paste0("[", paste(format(x, digits=17, trim=TRUE), collapse=","), "]")
str <- function(x) paste0('["', paste(x, collapse='","'), '"]')
mat <- function(m) paste0("[", paste(apply(m, 1, num), collapse=","), "]")
cat('{"description":"lmFit(t(X), model.matrix(~ class + age + sex + plate)), eBayes; for three classes, class3, each against the mean of all samples by contrasts.fit. Made by limma.R: set.seed(7), normal X with plates and ages, variances s^2 = 4/chisq(4)",\n',
'"versions":{"R":"', paste(R.version$major, R.version$minor, sep="."), '","limma":"', as.character(packageVersion("limma")), '"},\n',
'"class":', num(class), ',\n"class3":', num(class3), ',\n"age":', num(age), ',\n"sex":', str(sex), ',\n"plate":', str(plate),
',\n"X":', mat(X), ',\n"t":', num(fit$t[,2]), ',\n"p_value":', num(fit$p.value[,2]), ',\n"coefficient":', num(fit$coefficients[,2]), ',\n"df_total":', num(fit$df.total[1]), ',\n"df_prior":', num(fit$df.prior), ',\n"s2_prior":', num(fit$s2.prior),
',\n"t3":', mat(t(fit3$t)), ',\n"df_total3":', num(fit3$df.total[1]), '}\n', sep="")
