package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"runtime/debug"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// writeBills writes a bill of materials (SBOM, CycloneDX) for each program.
func (r *release) writeBills() error {
	for _, b := range r.binaries {
		bom, err := r.bill(b)
		if err != nil {
			return err
		}
		var text bytes.Buffer
		encoder := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true)
		if err := encoder.EncodeVersion(bom, cyclonedx.SpecVersion1_6); err != nil {
			return err
		}
		if err := r.write(r.fileName(b.platform, ".cdx.json"), text.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// bill lists the modules that are linked into a program, as its build info names them, and Go's
// standard library.
func (r *release) bill(b binary) (*cyclonedx.BOM, error) {
	info, err := buildinfo.ReadFile(b.path)
	if err != nil {
		return nil, err
	}
	sum, err := checksum(b.path)
	if err != nil {
		return nil, err
	}
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = serialNumber(sum)
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: r.time.Format("2006-01-02T15:04:05Z"),
		Component: r.programComponent(b, info, sum),
	}
	components := []cyclonedx.Component{moduleComponent("std", "v"+strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			return nil, fmt.Errorf("module %s is replaced", m.Path)
		}
		components = append(components, moduleComponent(m.Path, m.Version))
	}
	bom.Components = &components
	var all []string
	for _, c := range components {
		all = append(all, c.BOMRef)
	}
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: bom.Metadata.Component.BOMRef, Dependencies: &all}}
	return bom, nil
}

func (r *release) programComponent(b binary, info *debug.BuildInfo, sum string) *cyclonedx.Component {
	c := moduleComponent(info.Main.Path, r.version)
	c.Type = cyclonedx.ComponentTypeApplication
	c.Name = programName
	c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}}
	c.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: license}}}
	c.ExternalReferences = &[]cyclonedx.ExternalReference{{Type: cyclonedx.ERTypeVCS, URL: projectURL}}
	c.Properties = &[]cyclonedx.Property{{Name: "platform", Value: b.String()}, {Name: "revision", Value: r.revision}}
	return &c
}

func moduleComponent(path, version string) cyclonedx.Component {
	url := fmt.Sprintf("pkg:golang/%s@%s", path, strings.ReplaceAll(version, "+", "%2B"))
	return cyclonedx.Component{
		BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: url,
	}
}

// serialNumber is a UUID (version 8) made of a program's checksum.
func serialNumber(checksum string) string {
	id := sha256.Sum256([]byte(checksum))
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
}
