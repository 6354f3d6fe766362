package v1alpha1

import "reflect"

// Locate returns problems of fields with the lines of the fields in a config file, in the order of
// the file. It is for problems that are found after Parse.
func Locate(file []byte, problems Problems) Problems {
	text, problem := document(file, "")
	if problem != nil {
		return problems
	}
	d := decoder{text: text, lines: map[string]int{}}
	d.decode(text.Documents[0], reflect.ValueOf(Defaults()).Elem(), "")
	located := make(Problems, len(problems))
	for i, p := range problems {
		p.Line = d.lineOf(p.Field)
		located[i] = p
	}
	located.sort()
	return located
}
