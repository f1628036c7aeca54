package source

// Bounds of one answer.
const (
	MaxFile    = 4 << 20  // bytes of a file
	MaxAnswer  = 64 << 20 // bytes of an answer to a query
	MaxEntries = 1 << 17  // entries of a directory
	maxLink    = 4096     // bytes of a link's target or of a reason
)

// Source is a host that can be asked. Names of files are absolute without the
// leading slash, such as sys/class/infiniband, and never contain "..".
//
// Errors match [fs.ErrNotExist] where the host does not have the thing, else they
// say what the host said (errno's name, such as EINVAL) and are the same from a
// recording: they are of type [Failure].
type Source interface {
	// ReadFile returns a whole file.
	ReadFile(name string) ([]byte, error)
	// ReadDir returns the names in a directory, sorted.
	ReadDir(name string) ([]string, error)
	// ReadLink returns the target of a symbolic link as it stands.
	ReadLink(name string) (string, error)
	// Ask returns the answer to a query as JSON. Queries are a slash-separated
	// path: the package's Query constants list them with the types of their answers.
	Ask(query string) ([]byte, error)
}

// Teller is a source that has some answers as values of the type that the query's constant
// names, so that nobody has to write and read them as JSON.
type Teller interface {
	// Tell returns the answer to a query, given to the caller, or nil without an error for
	// a query that is to be asked with Ask. Strings have no control characters. Errors are
	// those of Ask.
	Tell(query string) (any, error)
}
