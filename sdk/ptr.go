package sdk

// Ptr returns a pointer to a copy of v. Guests use it instead of Go's new(v), of which TinyGo 0.41 as released makes a pointer to zero, without a word.
func Ptr[T any](v T) *T { return &v }
