package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

func (r *release) chartName() string { return programName + "-" + r.number() + ".tgz" }

// writeChart packs the chart, with the version and the coordinates of the image filled in. Helm's own
// function puts the time of day into the archive.
func (r *release) writeChart() error {
	loaded, err := loader.LoadDir(filepath.Join(r.source, "charts", programName))
	if err != nil {
		return err
	}
	var files []entry
	for _, f := range loaded.Raw {
		content, err := r.fillIn(f)
		if err != nil {
			return err
		}
		files = append(files, entry{programName + "/" + f.Name, 0o644, content})
	}
	slices.SortFunc(files, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	var archive bytes.Buffer
	if err := writeTarball(&archive, files, r.time); err != nil {
		return err
	}
	packed, err := loader.LoadArchive(bytes.NewReader(archive.Bytes()))
	if err != nil {
		return err
	}
	if err := packed.Validate(); err != nil {
		return err
	}
	return r.write(r.chartName(), archive.Bytes())
}

// fillIn returns the content of a file of the chart in the release.
func (r *release) fillIn(f *chart.File) ([]byte, error) {
	switch f.Name {
	case "Chart.yaml":
		return replaceLines(f, map[string]string{"version: .*": "version: " + r.number(), "appVersion: .*": "appVersion: " + r.version})
	case "values.yaml":
		return replaceLines(f, map[string]string{
			`  repository: ""`: "  repository: " + r.repository(),
			`  tag: ""`:        "  tag: " + r.version,
		})
	default:
		return f.Data, nil
	}
}

// replaceLines replaces lines, each of which must be there once.
func replaceLines(f *chart.File, replacements map[string]string) ([]byte, error) {
	content := f.Data
	for line, replacement := range replacements {
		pattern := regexp.MustCompile("(?m)^" + line + "$")
		if n := len(pattern.FindAll(content, -1)); n != 1 {
			return nil, fmt.Errorf("%s has %d lines %q, want 1", f.Name, n, line)
		}
		content = pattern.ReplaceAllLiteral(content, []byte(replacement))
	}
	return content, nil
}
