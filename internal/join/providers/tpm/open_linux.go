package tpm

import (
	"os"

	"github.com/google/go-tpm/tpm2/transport"
	"github.com/google/go-tpm/tpm2/transport/linuxtpm"
	"github.com/google/go-tpm/tpm2/transport/linuxudstpm"
)

func open(path string) (transport.TPMCloser, error) {
	if info, err := os.Stat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		return linuxudstpm.Open(path)
	}
	return linuxtpm.Open(path)
}
