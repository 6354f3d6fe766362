package typeschema

import (
	"go/ast"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// jsonNames are the names of a struct's fields in JSON.
func jsonNames(body *ast.StructType) map[string]string {
	names := map[string]string{}
	for _, f := range body.Fields.List {
		if f.Tag == nil {
			continue
		}
		tags, err := strconv.Unquote(f.Tag.Value)
		name, _, _ := strings.Cut(reflect.StructTag(tags).Get("json"), ",")
		for _, n := range f.Names {
			if err == nil && name != "" && name != "-" {
				names[n.Name] = name
			}
		}
	}
	return names
}

// fieldComments are the comments of fields. Fields without one have the last one before them, if that
// names them. shared is how many fields have a comment.
func fieldComments(body *ast.StructType) (comments map[string]string, shared map[string]int) {
	comments, shared = map[string]string{}, map[string]int{}
	var above string
	for _, f := range body.Fields.List {
		text := f.Doc.Text() + f.Comment.Text()
		if text != "" {
			above = text
		}
		for _, n := range f.Names {
			if text != "" || regexp.MustCompile(`\b`+n.Name+`\b`).MatchString(above) {
				comments[n.Name] = above
				shared[above]++
			}
		}
	}
	return comments, shared
}

// prose makes one paragraph of a comment. Names of fields become their names in JSON, links to
// constants their values, and nil becomes absent.
func (s *Source) prose(in, comment string, names map[string]string) string {
	text := strings.Join(strings.Fields(comment), " ")
	text = regexp.MustCompile(`\[[A-Za-z.]+\]`).ReplaceAllStringFunc(text, func(link string) string {
		name := strings.Trim(link, "[]")
		if value, ok := s.constants[in+"."+name]; ok {
			return value
		}
		return name
	})
	var b strings.Builder
	at := 0
	for _, word := range regexp.MustCompile(`[A-Za-z]+`).FindAllStringIndex(text, -1) {
		other, ok := names[text[word[0]:word[1]]]
		switch {
		case text[word[0]:word[1]] == "nil":
			other = "absent"
		case !ok || ownMeaning(text[:word[0]], text[word[1]:]):
			continue
		default:
			other = quoted(other)
		}
		b.WriteString(text[at:word[0]] + other)
		at = word[1]
	}
	b.WriteString(text[at:])
	return b.String()
}

// ownMeaning reports whether what stands around a word shows that the word names no field: the Node
// authorizer, a Node object, metav1.Status, "Widened".
func ownMeaning(before, after string) bool {
	return strings.HasSuffix(before, ".") || strings.HasSuffix(before, `"`) ||
		regexp.MustCompile(`^ (authorizer|authorization|object)`).MatchString(after)
}

func quoted(name string) string { return "`" + name + "`" }

// capital makes the first letter a capital one.
func capital(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
