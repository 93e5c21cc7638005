package sdk

// Ptr returns a pointer to a copy of v. Guests use it instead of new(v): TinyGo 0.41 silently makes that a pointer to
// zero.
func Ptr[T any](v T) *T { return &v }
