//go:build !linux

package main

import (
	"math"
	"time"
)

// threadTime is the time that has passed, because this system does not report the
// processor time of a thread.
func threadTime() time.Duration { return time.Duration(time.Now().UnixNano()) }

// processTime is the time that has passed, too.
func processTime() time.Duration { return threadTime() }

// processTimeOf is not available: callers that wait until it is constant wait only for a
// moment.
func processTimeOf(int) time.Duration { return 0 }

// peakMemory is not known.
func peakMemory(int) float64 { return math.NaN() }

// residentMemory is not known.
func residentMemory(int) float64 { return math.NaN() }
