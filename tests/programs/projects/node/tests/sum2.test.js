test('adds 2', () => expect(2 + 1).toBe(3));
test('does not add 2', () => expect(2 + 1).toBe(2));
