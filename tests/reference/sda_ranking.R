# sda.ranking and sda of the features with lfdr < 0.8; golub.csv and khan.csv are the
# training samples as tests/test_shrinkage_da_selection.py has them, y in the first column.
suppressMessages({library(sda); library(jsonlite)})
out <- list()
for (name in c("golub", "khan")) {
  d <- read.csv(paste0(name, ".csv"))
  y <- factor(d$y); X <- as.matrix(d[, -1])
  for (diagonal in c(FALSE, TRUE)) {
    cat <- catscore(X, y, diagonal=diagonal, verbose=FALSE)
    r <- sda.ranking(X, y, diagonal=diagonal, fdr=TRUE, plot.fdr=FALSE, verbose=FALSE)
    lfdr <- numeric(ncol(X)); lfdr[r[, "idx"]] <- r[, "lfdr"]
    keep <- which(lfdr < 0.8)
    fit <- sda(X[, keep, drop=FALSE], y, diagonal=diagonal, verbose=FALSE)
    out[[length(out)+1]] <- list(data=name, diagonal=diagonal,
      scores=unclass(t(cat))[, seq(1, ncol(X), length.out=40), drop=FALSE],
      lfdr=lfdr[seq(1, ncol(X), length.out=200)], kept=keep-1L,
      alpha=as.vector(fit$alpha), beta=unname(fit$beta)[, seq(1,length(keep),length.out=min(30,length(keep)))])
    base::cat(name, diagonal, length(keep), "\n")
  }
}
versions <- list(R=paste(R.version$major, R.version$minor, sep="."), sda=as.character(packageVersion("sda")), fdrtool=as.character(packageVersion("fdrtool")), corpcor=as.character(packageVersion("corpcor")), entropy=as.character(packageVersion("entropy")))
write(toJSON(list(versions=versions, cases=out), digits=12, auto_unbox=TRUE), "sda_ranking.json")
