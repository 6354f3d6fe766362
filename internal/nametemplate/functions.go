package nametemplate

import (
	"cmp"
	"errors"
	"fmt"
)

// functions are those of text/template that are useful for strings, with the same
// meaning.
func functions() map[string]func([]any) (any, error) {
	return map[string]func([]any) (any, error){
		"not":     not,
		"len":     length,
		"index":   index,
		"slice":   slice,
		"print":   func(args []any) (any, error) { return fmt.Sprint(args...), onlyValues(args) },
		"println": func(args []any) (any, error) { return fmt.Sprintln(args...), onlyValues(args) },
		"printf":  printf,
		"eq":      equal,
		"ne":      comparison(func(order int) bool { return order != 0 }, true),
		"lt":      comparison(func(order int) bool { return order < 0 }, false),
		"le":      comparison(func(order int) bool { return order <= 0 }, false),
		"gt":      comparison(func(order int) bool { return order > 0 }, false),
		"ge":      comparison(func(order int) bool { return order >= 0 }, false),
	}
}

var errArguments = errors.New("wrong number of arguments")

// onlyValues rejects {{print .}}, which makes no valid name.
func onlyValues(args []any) error {
	for _, arg := range args {
		if arg == (record{}) {
			return errors.New(". is not a single value: use a field")
		}
	}
	return nil
}

func not(args []any) (any, error) {
	if len(args) != 1 {
		return nil, errArguments
	}
	return !truth(args[0]), nil
}

func length(args []any) (any, error) {
	if len(args) != 1 {
		return nil, errArguments
	}
	text, ok := args[0].(string)
	if !ok {
		return nil, errors.New("want a string")
	}
	return len(text), nil
}

func printf(args []any) (any, error) {
	if len(args) == 0 {
		return nil, errArguments
	}
	format, ok := args[0].(string)
	if !ok {
		return nil, errors.New("the first argument must be a string")
	}
	return fmt.Sprintf(format, args[1:]...), onlyValues(args)
}

// index returns a byte of a string, or the string.
func index(args []any) (any, error) {
	text, positions, err := textAndPositions(args)
	switch {
	case err != nil:
		return nil, err
	case len(positions) == 0:
		return text, nil
	case len(positions) > 1:
		return nil, errArguments
	case positions[0] >= len(text):
		return nil, fmt.Errorf("%d is after the end of %q", positions[0], text)
	}
	return int(text[positions[0]]), nil
}

// slice returns the part of a string between two positions.
func slice(args []any) (any, error) {
	text, positions, err := textAndPositions(args)
	if err != nil {
		return nil, err
	}
	from, to := 0, len(text)
	switch len(positions) {
	case 2:
		from, to = positions[0], positions[1]
	case 1:
		from = positions[0]
	case 0:
	default:
		return nil, errArguments
	}
	if to > len(text) || from > to {
		return nil, fmt.Errorf("%d to %d is not a part of %q", from, to, text)
	}
	return text[from:to], nil
}

// textAndPositions returns the arguments of index and slice.
func textAndPositions(args []any) (text string, positions []int, err error) {
	if len(args) == 0 {
		return "", nil, errArguments
	}
	text, ok := args[0].(string)
	if !ok {
		return "", nil, errors.New("want a string")
	}
	for _, arg := range args[1:] {
		position, ok := arg.(int)
		if !ok || position < 0 {
			return "", nil, fmt.Errorf("%v is not a position in a string", arg)
		}
		positions = append(positions, position)
	}
	return text, positions, nil
}

// equal reports whether the first argument is one of the others.
func equal(args []any) (any, error) {
	if len(args) < 2 {
		return nil, errArguments
	}
	found := false
	for _, other := range args[1:] {
		order, err := compare(args[0], other, true)
		if err != nil {
			return nil, err
		}
		found = found || order == 0
	}
	return found, nil
}

func comparison(holds func(order int) bool, booleans bool) func([]any) (any, error) {
	return func(args []any) (any, error) {
		if len(args) != 2 {
			return nil, errArguments
		}
		order, err := compare(args[0], args[1], booleans)
		if err != nil {
			return nil, err
		}
		return holds(order), nil
	}
}

// compare compares two strings or two numbers, and booleans for equality only, if that is
// allowed.
func compare(a, b any, booleans bool) (int, error) {
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			return cmp.Compare(a, b), nil
		}
	case int:
		if b, ok := b.(int); ok {
			return cmp.Compare(a, b), nil
		}
	case bool:
		if b, ok := b.(bool); ok && booleans {
			if a == b {
				return 0, nil
			}
			return 1, nil
		}
	}
	return 0, errors.New("want values of the same type")
}
