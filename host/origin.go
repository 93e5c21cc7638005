package host

import "context"

// OriginPage is the origin of what a person asked from the slot's page in the browser.
const OriginPage = "page"

type originKey struct{}

// WithOrigin says where the operations of ctx come from, for Observation and Exchange: one short word of the caller's,
// as OriginPage. The slot treats all operations alike.
func WithOrigin(ctx context.Context, origin string) context.Context {
	return context.WithValue(ctx, originKey{}, origin)
}

// OriginOf is what WithOrigin said; "" where nobody did.
func OriginOf(ctx context.Context) string {
	origin, _ := ctx.Value(originKey{}).(string)
	return origin
}
