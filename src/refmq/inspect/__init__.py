"""Looking at the files of a stopped store: what is there, does it agree, how do two stores differ. No engine."""
