namespace forge::backends {}
