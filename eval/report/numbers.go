package report

import (
	"fmt"
	"math"
	"strconv"
)

func value(x float64, unit string) string {
	if unit == "share" {
		return strconv.FormatFloat(x, 'f', 3, 64)
	}
	return number(x)
}

func number(x float64) string {
	switch a := math.Abs(x); {
	case a >= 100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case a >= 1:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case a == 0:
		return "0"
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

func signed(x float64) string { return fmt.Sprintf("%+.3f", x) }

func percent(x float64) string { return strconv.FormatFloat(100*x, 'f', 1, 64) + " %" }

func budgetName(budget int64) string {
	if budget == 0 {
		return "no limit"
	}
	return fmt.Sprintf("at most %d tokens", budget)
}
