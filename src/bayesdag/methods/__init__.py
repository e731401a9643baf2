"""Methods: everything that turns a data set into a Posterior."""
