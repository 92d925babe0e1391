package token

// Kind is why a token cannot be used.
type Kind int

// The kinds of failure.
const (
	Unknown Kind = iota
	Invalid      // it is malformed
	Expired      // it has expired
)

var kindNames = [...]string{"Unknown", "InvalidCredential", "TokenExpired"}

// String returns a CamelCase word, suitable as a condition's reason.
func (k Kind) String() string { return kindNames[k] }

// Error says why a token cannot be used. It never contains the token.
type Error struct {
	Kind    Kind
	Message string
}

func (e *Error) Error() string { return e.Message }
