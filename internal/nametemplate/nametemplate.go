package nametemplate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template/parse"
)

// Template is a parsed template. It is immutable and safe for concurrent use.
type Template struct {
	root *parse.ListNode
}

// Parse parses a template. The error has the mistake and its place.
func Parse(text string) (*Template, error) {
	known := map[string]any{}
	for name := range functions() {
		known[name] = true
	}
	// and and or are not in the list: they do not evaluate all arguments.
	known["and"], known["or"] = true, true
	const name = "naming"
	trees, err := parse.Parse(name, text, "", "", known)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "template: "))
	}
	if len(trees) > 1 {
		return nil, errors.New("nested templates are not supported: remove define and block")
	}
	tree := trees[name]
	if tree == nil {
		return nil, errors.New("nested templates are not supported, and this template has nothing else")
	}
	return &Template{root: tree.Root}, nil
}

// Execute applies a template to fields.
func (t *Template) Execute(fields map[string]string) (string, error) {
	e := execution{fields: fields, variables: []variable{{"$", record{}}}}
	if err := e.list(record{}, t.root); err != nil {
		return "", err
	}
	return e.out.String(), nil
}

// record is the value of {{.}} outside of with. It has the fields.
type record struct{}

// variable is a declared variable.
type variable struct {
	name  string
	value any
}

// execution is the evaluation of a template. Values are strings, booleans, integers and
// the record.
type execution struct {
	fields    map[string]string
	variables []variable
	out       strings.Builder
}

func (e *execution) list(dot any, list *parse.ListNode) error {
	if list == nil {
		return nil
	}
	for _, node := range list.Nodes {
		if err := e.node(dot, node); err != nil {
			return err
		}
	}
	return nil
}

func (e *execution) node(dot any, node parse.Node) error {
	switch node := node.(type) {
	case *parse.TextNode:
		e.out.Write(node.Text)
		return nil
	case *parse.ActionNode:
		value, err := e.pipe(dot, node.Pipe)
		if err != nil || len(node.Pipe.Decl) > 0 {
			return err
		}
		if value == (record{}) {
			return fmt.Errorf("%s is not a single value: use a field", node)
		}
		_, err = fmt.Fprint(&e.out, value)
		return err
	case *parse.IfNode:
		return e.branch(dot, false, &node.BranchNode)
	case *parse.WithNode:
		return e.branch(dot, true, &node.BranchNode)
	}
	return fmt.Errorf("%s is not supported in templates of names", node)
}

// branch evaluates if and with. Variables that are declared inside end with it.
func (e *execution) branch(dot any, with bool, node *parse.BranchNode) error {
	outer := len(e.variables)
	defer func() { e.variables = e.variables[:outer] }()
	value, err := e.pipe(dot, node.Pipe)
	if err != nil {
		return err
	}
	if !truth(value) {
		return e.list(dot, node.ElseList)
	}
	if with {
		dot = value
	}
	return e.list(dot, node.List)
}

// pipe evaluates a pipeline: the value of a command is the last argument of the next.
func (e *execution) pipe(dot any, pipe *parse.PipeNode) (value any, err error) {
	var last []any
	for _, command := range pipe.Cmds {
		if value, err = e.command(dot, command, last); err != nil {
			return nil, err
		}
		last = []any{value}
	}
	for _, declared := range pipe.Decl {
		if !pipe.IsAssign {
			e.variables = append(e.variables, variable{declared.Ident[0], value})
			continue
		}
		assigned, err := e.find(declared.Ident[0])
		if err != nil {
			return nil, err
		}
		assigned.value = value
	}
	return value, nil
}

func (e *execution) command(dot any, command *parse.CommandNode, last []any) (any, error) {
	name, isFunction := command.Args[0].(*parse.IdentifierNode)
	if !isFunction {
		if len(command.Args) > 1 || len(last) > 0 {
			return nil, fmt.Errorf("%s is not a function, and takes no arguments", command.Args[0])
		}
		return e.value(dot, command.Args[0])
	}
	value, err := e.call(dot, name.Ident, command.Args[1:], last)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	return value, nil
}

// call calls a function. The last arguments follow the others.
func (e *execution) call(dot any, name string, args []parse.Node, last []any) (any, error) {
	if name == "and" || name == "or" {
		return e.choose(dot, name == "or", args, last)
	}
	values := make([]any, 0, len(args)+len(last))
	for _, arg := range args {
		value, err := e.value(dot, arg)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return functions()[name](append(values, last...))
}

// choose returns the first argument with the wanted truth value, or else the last one.
func (e *execution) choose(dot any, wanted bool, args []parse.Node, last []any) (any, error) {
	for n, arg := range args {
		value, err := e.value(dot, arg)
		if err != nil || truth(value) == wanted || n == len(args)-1 && len(last) == 0 {
			return value, err
		}
	}
	if len(last) == 0 {
		return nil, errors.New("missing arguments")
	}
	return last[0], nil
}

// value returns the value of an operand.
func (e *execution) value(dot any, node parse.Node) (any, error) {
	switch node := node.(type) {
	case *parse.DotNode:
		return dot, nil
	case *parse.FieldNode:
		return e.field(dot, node.Ident)
	case *parse.VariableNode:
		declared, err := e.find(node.Ident[0])
		if err != nil {
			return nil, err
		}
		return e.fieldOrAll(declared.value, node.Ident[1:])
	case *parse.PipeNode:
		return e.pipe(dot, node)
	case *parse.IdentifierNode:
		value, err := e.call(dot, node.Ident, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", node, err)
		}
		return value, nil
	case *parse.StringNode:
		return node.Text, nil
	case *parse.BoolNode:
		return node.True, nil
	case *parse.NumberNode:
		if node.IsInt && (strings.HasPrefix(node.Text, "'") || !strings.ContainsAny(node.Text, ".eEpPi")) {
			return int(node.Int64), nil
		}
	}
	return nil, fmt.Errorf("%s is not a supported value", node)
}

// fieldOrAll returns a field of a value, or the value itself for an empty path.
func (e *execution) fieldOrAll(of any, path []string) (any, error) {
	if len(path) == 0 {
		return of, nil
	}
	return e.field(of, path)
}

func (e *execution) field(of any, path []string) (string, error) {
	if of != (record{}) || len(path) != 1 {
		return "", fmt.Errorf("a value has no field .%s", path[len(path)-1])
	}
	value, known := e.fields[path[0]]
	if !known {
		return "", fmt.Errorf("there is no field .%s: want .%s", path[0], strings.Join(slices.Sorted(maps.Keys(e.fields)), ", ."))
	}
	return value, nil
}

// find returns the last declared variable with a name. The parser detects most undeclared
// names, but not in assignments.
func (e *execution) find(name string) (*variable, error) {
	for n := len(e.variables) - 1; n >= 0; n-- {
		if e.variables[n].name == name {
			return &e.variables[n], nil
		}
	}
	return nil, fmt.Errorf("there is no variable %s", name)
}

// truth reports whether a value is neither empty nor 0.
func truth(value any) bool {
	return value != "" && value != 0 && value != false
}
