package v1alpha1

// Locate returns problems of fields with the lines of the fields in a config file, in the order of
// the file. It is for problems that are found after Parse.
func Locate(file []byte, problems Problems) Problems {
	config := Defaults()
	d, err := decodeFile(file, config, &config.TypeMeta, Kind, "")
	if err != nil {
		return problems
	}
	located := make(Problems, len(problems))
	for i, p := range problems {
		p.Line = d.lineOf(p.Field)
		located[i] = p
	}
	located.sort()
	return located
}
