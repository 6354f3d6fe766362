// Package nametemplate makes names of nodes from templates, such as
// "{{.ClusterName}}-{{.DashedIP}}".
//
// Templates have the syntax of text/template and are parsed by that package. They are
// evaluated here, because text/template looks up methods by their names: the linker then
// keeps every exported method of every type in a program, which doubles the size of
// node-authorizer. Fields are strings, so that a small part of text/template suffices:
//
//   - fields ({{.InstanceID}}), constants, variables ({{$zone := .Zone}}) and pipelines
//     ({{.Zone | printf "%s.example"}});
//   - if, else and with;
//   - the functions and, or, not, eq, ne, lt, le, gt, ge, index, len, slice, print,
//     printf and println.
//
// Everything else is an error: range, template, define and block, methods, and the
// functions call, html, js and urlquery.
package nametemplate
