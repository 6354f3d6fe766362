package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"

	"github.com/node-authorizer/node-authorizer/internal/cli"
)

// A packagedFile is a file that only packages have. The path is that on a machine with the package.
type packagedFile struct {
	path    string
	mode    os.FileMode
	content []byte
}

// completePlugin is the program that kubectl asks to complete the arguments of its plugin.
const completePlugin = "#!/bin/sh\nexec /usr/bin/" + programName + " __complete \"$@\"\n"

// packagedFiles are the completions and the unit of the client. Packages have no scripts, so that nothing enables the unit.
func packagedFiles(source string) ([]packagedFile, error) {
	root := cli.Root()
	var bash, zsh, fish bytes.Buffer
	err := errors.Join(root.GenBashCompletionV2(&bash, true), root.GenZshCompletion(&zsh), root.GenFishCompletion(&fish, true))
	if err != nil {
		return nil, err
	}
	unit, err := os.ReadFile(filepath.Join(source, "deploy", "machine", programName+".service"))
	if err != nil {
		return nil, err
	}
	const local, packaged = "ExecStart=/usr/local/bin/", "ExecStart=/usr/bin/"
	if !bytes.Contains(unit, []byte(local)) {
		return nil, errors.New("the unit of the client has no line " + local)
	}
	return []packagedFile{
		{"/usr/share/bash-completion/completions/" + programName, 0o644, bash.Bytes()},
		{"/usr/share/zsh/site-functions/_" + programName, 0o644, zsh.Bytes()},
		{"/usr/share/fish/vendor_completions.d/" + programName + ".fish", 0o644, fish.Bytes()},
		{"/usr/bin/kubectl_complete-node_authorizer", 0o755, []byte(completePlugin)},
		{"/usr/lib/systemd/system/" + programName + ".service", 0o644, bytes.Replace(unit, []byte(local), []byte(packaged), 1)},
	}, nil
}
