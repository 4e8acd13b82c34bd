"""WHAT WAS MEASURED: estimators that turn results into numbers a curriculum can weigh."""
