package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // formats of packages
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// writePackages writes packages for Debian and for distributions with RPM. They have the program, the
// link that makes it a plugin of kubectl, the manual pages, completions, and the unit of the client.
func (r *release) writePackages(work string) error {
	more, err := r.moreContents(work)
	if err != nil {
		return err
	}
	for _, b := range r.binaries {
		if b.os != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm"} {
			if err := r.writePackage(b, format, more); err != nil {
				return fmt.Errorf("%s for %s: %w", format, b, err)
			}
		}
	}
	return nil
}

func (r *release) writePackage(b binary, format string, more files.Contents) error {
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: programName, Version: r.version, Arch: b.arch, Platform: b.os, Section: "admin", Priority: "optional",
		Maintainer: "The authors of " + programName + " <" + projectURL + ">", Description: description,
		Homepage: projectURL, License: license, MTime: r.time,
		Overridables: nfpm.Overridables{Contents: append(r.packageContents(b), more...), RPM: nfpm.RPM{BuildHost: programName}},
	})
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	var content bytes.Buffer
	if err := packager.Package(info, &content); err != nil {
		return err
	}
	return r.write(r.fileName(b.platform, "."+format), content.Bytes())
}

func (r *release) attributes(mode os.FileMode) *files.ContentFileInfo {
	return &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.time}
}

// moreContents writes the files that only packages have to a folder.
func (r *release) moreContents(work string) (contents files.Contents, err error) {
	more, err := packagedFiles(r.source)
	if err != nil {
		return nil, err
	}
	for _, f := range more {
		path := filepath.Join(work, "root", f.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, f.content, f.mode); err != nil {
			return nil, err
		}
		contents = append(contents, &files.Content{
			Source: path, Destination: f.path, FileInfo: r.attributes(f.mode), Packager: f.format,
		})
	}
	return contents, nil
}

func (r *release) packageContents(b binary) files.Contents {
	contents := files.Contents{
		{Source: b.path, Destination: "/usr/bin/" + programName, FileInfo: r.attributes(0o755)},
		{Source: programName, Destination: "/usr/bin/kubectl-node_authorizer", Type: files.TypeSymlink, FileInfo: r.attributes(0o777)},
		{
			Source: filepath.Join(r.source, "LICENSE"), Destination: "/usr/share/doc/" + programName + "/copyright",
			FileInfo: r.attributes(0o644),
		},
	}
	for _, path := range r.packagedManuals {
		contents = append(contents, &files.Content{
			Source: path, Destination: manualPath(filepath.Base(path)), FileInfo: r.attributes(0o644),
		})
	}
	// The page that kubectl's plugin is looked up by.
	return append(contents, &files.Content{
		Source: programName + ".1.gz", Destination: manualPath("kubectl-node_authorizer.1.gz"), Type: files.TypeSymlink,
		FileInfo: r.attributes(0o777),
	})
}

// manualPath is where a package has a manual page.
func manualPath(name string) string { return "/usr/share/man/man1/" + name }
