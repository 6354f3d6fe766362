package v1alpha1

import "embed"

//go:embed document.yaml
var files embed.FS

// Document returns a config file with the values of Defaults and an explanation of each field.
// Required fields are empty.
func Document() string {
	text, err := files.ReadFile("document.yaml")
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}
