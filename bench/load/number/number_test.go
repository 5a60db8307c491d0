package number_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load/number"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "+0": 0, "0.000": 0, "0e9": 0, "0e-400": 0, "0x0p9": 0, "1e6": 1e6, "-2.5": -2.5, "1e-300": 1e-300, "5e-324": 5e-324,
		"0x1p4": 16, "0xap0": 10,
	} {
		got, err := number.Parse(text)
		require.NoError(t, err, text)
		assert.InDelta(t, want, got, 0, text)
	}
	for _, text := range []string{"", "x", "nan", "inf", "-Inf", "1e400", "-1e400", "1 ", "1e", "1s"} {
		_, err := number.Parse(text)
		assert.ErrorIs(t, err, number.ErrNone, text)
	}
	for _, text := range []string{"1e-400", "-1e-400", "1E-400", "0.0001e-400", "0x1p-2000", "0xap-2000", "0XAP-2000"} {
		_, err := number.Parse(text)
		assert.ErrorIs(t, err, number.ErrVanishes, text)
	}
	for _, text := range []string{"-0", "-0.0", "-.0", "-0e9", "-0E-400", "-0x0p9"} {
		_, err := number.Parse(text)
		assert.ErrorIs(t, err, number.ErrMinus, text)
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "0s": 0, "0.0ms": 0, "1ns": 1, "1.5us": 1500, "-1h": -time.Hour} {
		got, err := number.Duration(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "1", "1e3s", "9999999h", "x"} {
		_, err := number.Duration(text)
		assert.ErrorIs(t, err, number.ErrNone, text)
	}
	for _, text := range []string{"0.1ns", "-0.9ns", "0.0000000000001s", "0.0001us"} {
		_, err := number.Duration(text)
		assert.ErrorIs(t, err, number.ErrVanishes, text)
	}
	for _, text := range []string{"-0", "-0s", "-0.0ms", "-0h0m"} {
		_, err := number.Duration(text)
		assert.ErrorIs(t, err, number.ErrMinus, text)
	}
}
