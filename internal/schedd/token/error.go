package token

// Kind says why a token cannot be used.
type Kind int

// The kinds of failure.
const (
	Unknown Kind = iota
	Invalid      // it is malformed
	Expired      // it has ended
)

var kindNames = [...]string{"Unknown", "InvalidCredential", "TokenExpired"}

// String is a CamelCase word, fit for a condition's reason.
func (k Kind) String() string { return kindNames[k] }

// Error says why a token cannot be used. It never holds one.
type Error struct {
	Kind    Kind
	Message string
}

func (e *Error) Error() string { return e.Message }
