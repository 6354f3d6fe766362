package admissionpolicy

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// use is a field that an expression reads.
type use struct {
	// root is the variable: object, oldObject or request.
	root  string
	field attackpaths.Field
	// presence is true if the expression only asks whether the field is there.
	presence bool
}

// reader collects what expressions read.
type reader struct {
	env *cel.Env
	// variables are the expressions of the policy's variables, and read the variables that were
	// visited.
	variables map[string]string
	read      map[string]bool

	uses []use
	// namespace is true if the result may depend on the namespace.
	namespace bool
	// identity is true if the result may depend on who sends the request.
	identity bool
	// open is the first thing that is never known, or what is wrong.
	open string
}

// expression reads one expression.
func (r *reader) expression(text string) {
	checked, issues := r.env.Compile(text)
	if issues.Err() != nil {
		r.reads("an expression that cannot be analyzed")
		return
	}
	r.walk(checked.NativeRep().Expr())
}

// reads notes something that is never known.
func (r *reader) reads(what string) {
	if r.open == "" {
		r.open = what
	}
}

// walk visits an expression and what it is made of.
func (r *reader) walk(e ast.Expr) {
	if root, field, presence, ok := chain(e); ok {
		r.use(root, field, presence)
		return
	}
	switch e.Kind() {
	case ast.CallKind:
		r.call(e.AsCall())
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		for _, part := range [...]ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
			r.walk(part)
		}
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			r.walk(element)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			r.walk(entry.AsMapEntry().Key())
			r.walk(entry.AsMapEntry().Value())
		}
	case ast.SelectKind:
		r.walk(e.AsSelect().Operand())
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			r.walk(field.AsStructField().Value())
		}
	}
}

// call visits a call. A comparison with null, and a string that is looked for in a map, only
// ask whether a field is there.
func (r *reader) call(c ast.CallExpr) {
	args := c.Args()
	if len(args) == 2 {
		switch c.FunctionName() {
		case operators.Equals, operators.NotEquals:
			if r.comparesWithNull(args[0], args[1]) || r.comparesWithNull(args[1], args[0]) {
				return
			}
		case operators.In:
			key, isText := text(args[0])
			if root, field, _, ok := chain(args[1]); ok && isText {
				r.use(root, append(field, key), true)
				return
			}
		}
	}
	if c.IsMemberFunction() {
		r.walk(c.Target())
	}
	for _, arg := range args {
		r.walk(arg)
	}
}

func (r *reader) comparesWithNull(e, null ast.Expr) bool {
	if null.Kind() != ast.LiteralKind || null.AsLiteral() != types.NullValue {
		return false
	}
	root, field, _, ok := chain(e)
	// A field of an object may be there and null.
	if !ok || len(field) > 0 {
		return false
	}
	r.use(root, field, true)
	return true
}

// chain reads an expression that selects a field of a variable by constant names.
func chain(e ast.Expr) (root string, field attackpaths.Field, presence, ok bool) {
	switch e.Kind() {
	case ast.IdentKind:
		root = strings.TrimPrefix(e.AsIdent(), ".")
		return root, nil, false, isVariable(root)
	case ast.SelectKind:
		s := e.AsSelect()
		root, field, _, ok = chain(s.Operand())
		return root, append(field, s.FieldName()), s.IsTestOnly(), ok
	case ast.CallKind:
		c := e.AsCall()
		switch c.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			if name, isText := text(c.Args()[1]); isText {
				root, field, _, ok = chain(c.Args()[0])
				return root, append(field, name), false, ok
			}
		}
	}
	return "", nil, false, false
}

func text(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// isVariable reports whether a name is declared by the API server. Other names are the variables
// of comprehensions, whose range is visited, and types.
func isVariable(name string) bool {
	switch name {
	case plugincel.ObjectVarName, plugincel.OldObjectVarName, plugincel.RequestVarName, plugincel.NamespaceVarName,
		plugincel.VariableVarName, plugincel.ParamsVarName, plugincel.AuthorizerVarName, plugincel.RequestResourceAuthorizerVarName:
		return true
	}
	return false
}

// use notes a field of a variable.
func (r *reader) use(root string, field attackpaths.Field, presence bool) {
	switch root {
	case plugincel.ObjectVarName, plugincel.OldObjectVarName:
		r.uses = append(r.uses, use{root, field, presence})
	case plugincel.RequestVarName:
		r.useRequest(field)
	case plugincel.NamespaceVarName:
		r.useNamespace(field)
	case plugincel.VariableVarName:
		r.useVariable(field)
	case plugincel.ParamsVarName:
		r.reads("parameters")
	default:
		r.reads("the authorizer")
	}
}

func (r *reader) useRequest(field attackpaths.Field) {
	if len(field) == 0 {
		r.reads("the whole request")
		return
	}
	switch field[0] {
	case "operation", "kind", "resource", "subResource", "requestKind", "requestResource", "requestSubResource", "dryRun":
	case "namespace":
		r.namespace = true
	case "name":
		r.uses = append(r.uses, use{root: plugincel.RequestVarName, field: field})
	case "userInfo":
		r.identity = true
		r.reads("request.userInfo")
	default:
		r.reads("request." + field[0])
	}
}

func (r *reader) useNamespace(field attackpaths.Field) {
	r.namespace = true
	if len(field) < 2 || field[0] != "metadata" || field[1] != "name" && field[1] != "labels" {
		r.reads(strings.Join(append([]string{plugincel.NamespaceVarName}, field...), "."))
		return
	}
	r.uses = append(r.uses, use{root: plugincel.NamespaceVarName, field: field})
}

func (r *reader) useVariable(field attackpaths.Field) {
	if len(field) == 0 {
		r.reads("all variables")
		return
	}
	if name := field[0]; !r.read[name] {
		r.read[name] = true
		if text, ok := r.variables[name]; ok {
			r.expression(text)
		}
	}
}
