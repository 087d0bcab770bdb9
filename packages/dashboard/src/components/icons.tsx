/** Line icons, 18 px, drawn here rather than from a package. Hidden from screen readers, which read the adjacent text. */
const paths = {
  overview: "M3 13h4l3-8 4 14 3-8h4",
  rules: "M4 6h16M4 12h16M4 18h10",
  history: "M4 12a8 8 0 1 0 3-6.2M4 4v4h4M12 8v4l3 2",
  keys: "M14.5 9.5a4 4 0 1 1-8 0 4 4 0 0 1 8 0Zm-1 3L20 19m-3-3 2-2",
  top: "M5 20V10m7 10V4m7 16v-7",
  spend:
    "M12 3v18M16.5 7.5C16 6 14.500 5.500 12 5.500c-2.800 0-4.500 1.200-4.500 3.200 0 4.600 9.500 2 9.500 6.600 0 2.100-2 3.200-5 3.200-2.600 0-4.500-.8-5-2.500",
  load: "M4 18a8.5 8.5 0 1 1 16 0M12 15l4-5M12 15h.01",
  alerts: "M6 16V11a6 6 0 1 1 12 0v5l1.5 2h-15ZM10 20.5h4",
  store:
    "M4 6c0-1.7 3.6-3 8-3s8 1.3 8 3-3.6 3-8 3-8-1.3-8-3Zm0 0v12c0 1.7 3.6 3 8 3s8-1.3 8-3V6M4 12c0 1.7 3.6 3 8 3s8-1.3 8-3",
  regions: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18ZM3 12h18M12 3c5 5.5 5 12.5 0 18M12 3c-5 5.5-5 12.5 0 18",
  audit: "M8 4h8v3H8ZM8 5.5H5V21h14V5.5h-3M9 12h6M9 16h4",
  tokens: "M12 3 5 6v5c0 5 3 8.5 7 10 4-1.5 7-5 7-10V6Zm-2.5 9 2 2 3.5-4",
  menu: "M4 7h16M4 12h16M4 17h16",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      width="18"
      height="18"
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.8"
      aria-hidden="true"
    >
      <path d={paths[name]} strokeLinecap="round" strokeLinejoin="round" />
    </svg>
  );
}
