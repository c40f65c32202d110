test('adds 3', () => expect(3 + 1).toBe(4));
test('does not add 3', () => expect(3 + 1).toBe(3));
