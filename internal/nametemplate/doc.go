// Package nametemplate makes names of nodes from templates, such as
// "{{.ClusterName}}-{{.DashedIP}}".
//
// A template is written as for text/template, and read by the parser of that package.
// What follows from it is worked out here, because text/template looks methods up by
// their names: a program that calls it keeps every exported method of every type, and
// node-authorizer then has more than twice its size. A field is a string, and a name is
// made of strings, so that little of text/template is needed:
//
//   - fields ({{.InstanceID}}), constants, variables ({{$zone := .Zone}}) and pipelines
//     ({{.Zone | printf "%s.example"}});
//   - if, else and with;
//   - the functions and, or, not, eq, ne, lt, le, gt, ge, index, len, slice, print,
//     printf and println.
//
// All else is an error: range, template, define and block, methods, and the functions
// call, html, js and urlquery.
package nametemplate
