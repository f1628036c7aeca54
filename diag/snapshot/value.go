package snapshot

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Value is one reading: known, unreadable with the reason, or absent, which is
// the zero Value.
type Value[T any] struct {
	v     T
	state valueState
	why   string
}

type valueState uint8

const (
	absent valueState = iota
	known
	unreadable
)

// Known is a reading that was made.
func Known[T any](v T) Value[T] { return Value[T]{v: v, state: known} }

// Unreadable is a reading that should be there and could not be made; why is one
// line for people, such as "EINVAL" or "permission denied".
func Unreadable[T any](why string) Value[T] { return Value[T]{state: unreadable, why: why} }

// Get returns the reading, and whether there is one.
func (v Value[T]) Get() (T, bool) { return v.v, v.state == known }

// Or returns the reading, or def without one.
func (v Value[T]) Or(def T) T {
	if v.state == known {
		return v.v
	}
	return def
}

// IsKnown reports whether the reading was made.
func (v Value[T]) IsKnown() bool { return v.state == known }

// IsZero reports whether the reading is absent: nobody has it or asked.
func (v Value[T]) IsZero() bool { return v.state == absent }

// Why says why there is no reading; it is empty for a known one.
func (v Value[T]) Why() string {
	switch v.state {
	case known:
		return ""
	case unreadable:
		return v.why
	case absent:
	}
	return "not recorded"
}

// Error is nil for a known value, else an error that says why it is not.
func (v Value[T]) Error() error {
	if v.state == known {
		return nil
	}
	return fmt.Errorf("%s", v.Why())
}

// String formats the reading, or the reason in brackets.
func (v Value[T]) String() string {
	if v.state == known {
		return fmt.Sprint(v.v)
	}
	return "[" + v.Why() + "]"
}

// unread is how an unreadable value looks in JSON.
type unread struct {
	Unreadable string `json:"unreadable"`
}

var unreadPrefix = []byte(`{"unreadable":`)

// MarshalJSON writes the reading itself, {"unreadable": why}, or null.
func (v Value[T]) MarshalJSON() ([]byte, error) {
	switch v.state {
	case known:
		var room [40]byte
		if b, ok := appendKnown(room[:0], &v.v); ok {
			return bytes.Clone(b), nil
		}
		return json.Marshal(v.v)
	case unreadable:
		return json.Marshal(unread{v.why})
	case absent:
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (v *Value[T]) UnmarshalJSON(b []byte) error {
	*v = Value[T]{}
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	if bytes.HasPrefix(b, unreadPrefix) {
		var u unread
		if err := json.Unmarshal(b, &u); err != nil {
			return err
		}
		*v = Unreadable[T](u.Unreadable)
		return nil
	}
	v.state = known
	if readKnown(b, &v.v) {
		return nil
	}
	return json.Unmarshal(b, &v.v)
}
