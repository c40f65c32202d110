test('adds 1', () => expect(1 + 1).toBe(2));
test('does not add 1', () => expect(1 + 1).toBe(1));
