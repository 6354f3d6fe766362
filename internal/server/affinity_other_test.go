//go:build !linux

package server

import (
	"os/exec"
	"testing"
)

// processors returns nil: the processors are unknown.
func processors() []int { return nil }

func pin(testing.TB, []int) {}

func startOn(process *exec.Cmd, _ []int) error { return process.Start() }
