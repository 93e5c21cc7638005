// Json shows any JSON.
export const Json = ({ of }: { of: unknown }) => <pre dir="ltr" tabIndex={0} class="words">{JSON.stringify(of, null, 2)}</pre>;
