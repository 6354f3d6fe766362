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
	// format is the only format of packages that has the file, or empty for all.
	format string
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
	const share = "/usr/share/"
	return []packagedFile{
		{path: share + "bash-completion/completions/" + programName, mode: 0o644, content: bash.Bytes()},
		// zsh of Debian does not read site-functions. Source: /usr/share/doc/zsh-common/README.Debian
		{path: share + "zsh/vendor-completions/_" + programName, mode: 0o644, content: zsh.Bytes(), format: "deb"},
		{path: share + "zsh/site-functions/_" + programName, mode: 0o644, content: zsh.Bytes(), format: "rpm"},
		{path: share + "fish/vendor_completions.d/" + programName + ".fish", mode: 0o644, content: fish.Bytes()},
		{path: "/usr/bin/kubectl_complete-node_authorizer", mode: 0o755, content: []byte(completePlugin)},
		{
			path: "/usr/lib/systemd/system/" + programName + ".service", mode: 0o644,
			content: bytes.Replace(unit, []byte(local), []byte(packaged), 1),
		},
	}, nil
}
